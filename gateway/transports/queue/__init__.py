"""A worker behind a queue: the gateway adds calls to Redis Streams, bridges read them and call their gRPC worker.

shared    names                  the keys in Redis
          wire                   the messages in Redis
          seals                  what each message is bound to
          clock                  Redis' clock, in which deadlines are written
gateway   worker                 accepts calls or rejects them; lists the bridges' descriptions
          request_exchange       sends calls, receives replies, monitors the queue each second
          open_calls             calls without an answer
          outbox                 what the gateway writes next
          queue_monitor          the commands and answers of one look at the queue
          consumer_registry      the bridges that are present
          abandoned_streams      removes calls from request streams that no bridge reads
          request_stream         backlog and throughput of one request stream
          failures               each failure, with its reason code
          session                the connections to Redis
bridge    bridge                 a gRPC worker that gets its calls from the queue
          consumer               reads calls, has them handled, writes the replies
          consumer_context       what the parts of a consumer share
          handler                the protocol of what handles calls
          grpc_forwarder         the handler that calls a gRPC worker
          delivery_dispatcher    decides what happens to a delivered entry
          pending_deliveries     entries in hand, and recent replies
          reply_writer           writes replies and acknowledges entries
          heartbeat              writes the presence, renews entries, claims those of dead consumers
          commands               the Redis commands of a consumer
"""
