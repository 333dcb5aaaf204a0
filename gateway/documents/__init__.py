"""The document: exactly what a worker is sent, and the key that stands for it.

A verdict is a function of its document. What is not in the document cannot matter to a verdict; so equal documents,
put to the same policy with the same settings, are the same question.
"""
