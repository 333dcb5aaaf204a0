"""Text -> syntax tree: cel-go's parser package, with the errors' texts of its common package."""
