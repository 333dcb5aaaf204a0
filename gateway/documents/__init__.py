"""The document: exactly what a worker receives, and the cache key made from it.

A verdict is a function of its document. So the same policy with the same settings has the same verdict for equal
documents.
"""
