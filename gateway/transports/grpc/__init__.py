"""A worker over gRPC: its addresses, the connections to them, and the calls.

worker          one worker: picks a connection for each call
retries         one call and its attempts, on another connection if the first one fails
endpoint_set    all addresses of a worker
endpoint        one address: its connections, and a circuit breaker for each policy
breaker         whether an endpoint judges a policy; a probe is a copy of a call that finds out
connection      one channel: described, health-checked, and called over a stream or in unary calls
unary_review    one unary call, whose answer is received where there is room for it
stream          one ReviewStream: the calls of one iteration of the event loop in one message
addresses       resolves a target
"""
