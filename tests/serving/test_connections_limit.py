"""How many connections there may be, and which ends for a new one."""

from gateway.serving.refusals import Refusal
from tests.serving.test_http_server import post_head


def test_a_connection_too_many_ends_the_oldest_that_has_brought_no_review(serve, answered):
    """Clients that only connect cannot shut out those that have reviews."""
    served = serve(connections=3)
    with_review, first, second = served.tls(), served.tls(), served.tls()
    with_review.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(with_review)[0] == 200
    served.until(lambda: served.front.connections == 3)

    third = served.tls()
    assert first.recv(1) == b""
    assert ("refused", Refusal.CONNECTIONS) in served.events
    assert ("limit", "connections") in served.events
    for connection in (with_review, second, third):
        connection.sendall(post_head("Content-Length: 2") + b"{}")
        assert answered(connection)[0] == 200


def test_where_all_have_brought_reviews_the_new_one_ends(serve, answered):
    """An API server's connection is never ended for another client's."""
    served = serve(connections=2)
    kept = [served.tls() for _ in range(2)]
    for connection in kept:
        connection.sendall(post_head("Content-Length: 2") + b"{}")
        assert answered(connection)[0] == 200
    one_more = served.tls()
    assert one_more.recv(1) == b""
    for connection in kept:
        connection.sendall(post_head("Content-Length: 2") + b"{}")
        assert answered(connection)[0] == 200
