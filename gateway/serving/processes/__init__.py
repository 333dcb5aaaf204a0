"""Several processes of one gateway: ``serve --processes N``. ``pod`` has the whole of it."""
