"""What a policy may see, and what it may change: pointers, sets of places, and the part of a value that they show.

Inputs are places in the AdmissionRequest, writes are places in the object under review; the two are two types, so that
neither can be used for the other. The first token of an input names a member of the request.
"""
