"""A worker behind a queue: the gateway adds calls to Redis Streams, bridges read them and call their gRPC worker.

both      names     what everything is called in Redis
          wire      what stands there
          seals     what each message is bound to
          clock     Redis' clock, by which everybody's deadlines are said
gateway   worker    takes calls, or refuses them; says who is there
          exchange  calls out, answers in, a look at the queue each second
          calls      what is open
          outbox    what is to be written
          crowd     who is there, by what they say of themselves
          desertion what becomes of calls where nobody is any more
          lane      how much waits, and how fast it goes
          session   the connections to Redis
bridge    bridge    a gRPC worker, fed from the queue
          consumer  takes calls, has them answered, writes the answers
          sorting   what becomes of an entry
          hands     what is in hand, and what was answered lately
          answering how answers get into Redis
          heartbeat how it says that it is there, and claims what others have left
          commands  what it says to Redis
          relaying  how it calls the worker
"""
