"""Texts -> values with their lines: YAML and JSON, strict decoding as Go does it, and the reader of one field."""
