"""Values at run time, as Python objects.

| CEL         | Python                                                                              |
| ----------- | ----------------------------------------------------------------------------------- |
| bool, string, bytes, double, null | bool, str, bytes, float, None                                 |
| int         | int from -2**63 to 2**63-1; a larger one, from JSON, is a double (see ``adapted``)  |
| uint        | ``Uint``                                                                            |
| list        | list (never changed once made)                                                      |
| map         | dict if all keys are strings, as in JSON; else ``Map``                              |
| timestamp, duration | ``Timestamp``, ``Duration``                                                 |
| type        | ``Type``                                                                            |
| optional    | ``Optional``                                                                        |
| all others  | ``Opaque`` objects of the libraries                                                 |

An error is not a value: it is raised, as a ``Fault``.
"""
