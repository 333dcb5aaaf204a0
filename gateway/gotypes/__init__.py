"""Go types as JSON sees them: what they are, what a decoder makes of a value, and in which words it refuses one."""
