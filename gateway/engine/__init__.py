"""The engine: takes a review and the workers' answers, returns policy calls and a decision. No sockets, no clock."""
