"""A worker over gRPC: its addresses, the connections to them, and one call put to one of them.

worker      who is called: picks a connection for each call
retries     one call, and its attempts: again on another connection, where the first one fails
replica     one address each: its connections, and a circuit breaker for each policy
connection  one channel: described, watched over (health), and called, by stream or by call
stream      one ReviewStream: everything of one turn of the loop in one message
addresses   which addresses a target has
"""
