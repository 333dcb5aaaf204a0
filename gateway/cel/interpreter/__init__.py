"""Checked tree -> program: cel-go's interpreter package."""
