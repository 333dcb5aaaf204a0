"""Syntax tree -> types, and what each name and call refers to: cel-go's checker package and its validators."""
