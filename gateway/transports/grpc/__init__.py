"""A worker over gRPC: its addresses, the connections to them, and one ask put to one of them.

worker      who is asked: picks a connection, and a second one where the first fails or is late
replicas    one address each: its connections, and a circuit breaker for each policy
connection  one channel: described, watched over (health), and asked, by stream or by call
stream      one ReviewStream: everything of one turn of the loop in one message
addresses   which addresses a target has
"""
