"""The dashboard at /ui/ on the admin listener: its files, its data and its live stream."""
