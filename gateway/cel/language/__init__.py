"""The language: text -> tree -> types -> plan."""
