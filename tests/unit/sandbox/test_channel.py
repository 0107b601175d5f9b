import json
import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.sandbox.channel import MAX_MESSAGE_BYTES, Channel, ChannelClosedError

HEADER = struct.Struct("!QI")
SHORT_S = 0.05

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def ends():
    left, right = Channel.pair()
    yield left, right
    left.close()
    right.close()


@pytest.fixture
def raw():
    """A channel, and the bare socket at the other end of it."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


class TestRoundTrip:
    @given(message=st.dictionaries(st.text(), json_values))
    def test_any_json_object_arrives_unchanged(self, message):
        left, right = Channel.pair()
        left.send(message)
        assert right.receive(5.0) == message
        left.close()
        right.close()

    @given(messages=st.lists(st.dictionaries(st.text(), json_values), max_size=5))
    def test_messages_keep_their_order_and_boundaries(self, messages):
        left, right = Channel.pair()
        for message in messages:
            right.send(message)
        assert [left.receive(5.0) for _ in messages] == messages
        left.close()
        right.close()

    def test_a_message_may_exceed_every_buffer(self, ends):
        left, right = ends
        message = {"source": "x" * (8 << 20)}
        sender = threading.Thread(target=left.send, args=(message,))
        sender.start()
        assert right.receive(30.0) == message
        sender.join()

    def test_descriptors_arrive_open_and_in_order(self, ends):
        left, right = ends
        pipes = [os.pipe() for _ in range(3)]
        left.send({"count": 3}, [read for read, _ in pipes])
        message, received = right.receive_with_fds(5.0)
        assert message == {"count": 3}
        for number, (fd, (_, write)) in enumerate(zip(received, pipes, strict=True)):
            os.write(write, bytes([number]))
            assert os.read(fd, 1) == bytes([number])
        for fd in (*received, *(fd for pipe in pipes for fd in pipe)):
            os.close(fd)

    def test_a_message_may_carry_the_maximum_of_descriptors(self, ends):
        left, right = ends
        null = os.open(os.devnull, os.O_RDONLY)
        left.send({}, [null] * 250)
        _, received = right.receive_with_fds(5.0)
        assert len(received) == 250
        for fd in (null, *received):
            os.close(fd)

    def test_more_descriptors_than_the_limit_are_refused_before_anything_is_sent(self, ends):
        left, right = ends
        with pytest.raises(ValueError, match="limit is 250"):
            left.send({}, [0] * 251)
        left.send({"next": 1})
        assert right.receive(5.0) == {"next": 1}

    def test_unexpected_descriptors_are_closed(self, ends):
        left, right = ends
        before = open_descriptors()
        left.send({}, [0, 0])
        right.receive(5.0)
        assert open_descriptors() == before

    def test_a_descriptor_can_be_taken_over(self, ends):
        left, right = ends
        moved = Channel.from_fd(os.dup(right.fileno()))
        right.close()
        left.send({"to": "the new owner"})
        assert moved.receive(5.0) == {"to": "the new owner"}
        moved.close()


class TestFailures:
    def test_a_closed_peer_is_noticed_when_receiving(self, ends):
        left, right = ends
        right.close()
        with pytest.raises(ChannelClosedError):
            left.receive()

    def test_a_closed_peer_is_noticed_when_sending(self, ends):
        left, right = ends
        right.close()
        with pytest.raises(ChannelClosedError):
            left.send({})

    def test_messages_sent_before_closing_still_arrive(self, ends):
        left, right = ends
        right.send({"last": "words"})
        right.close()
        assert left.receive(5.0) == {"last": "words"}

    def test_receiving_without_a_message_times_out(self, ends):
        with pytest.raises(TimeoutError):
            ends[0].receive(SHORT_S)

    def test_an_incomplete_message_times_out(self, raw):
        channel, peer = raw
        peer.sendall(HEADER.pack(100, 0) + b"{")
        with pytest.raises(TimeoutError):
            channel.receive(SHORT_S)

    def test_a_slow_message_does_not_extend_the_time_limit(self, raw):
        channel, peer = raw
        done = threading.Event()

        def drip():
            peer.sendall(HEADER.pack(1 << 20, 0))
            while not done.wait(SHORT_S / 5):
                peer.sendall(b" ")

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(TimeoutError):
            channel.receive(2 * SHORT_S)
        done.set()
        dripping.join()

    def test_a_peer_that_does_not_read_times_out(self, ends):
        with pytest.raises(TimeoutError):
            ends[0].send({"source": "x" * (8 << 20)}, timeout_s=SHORT_S)

    def test_a_passed_deadline_raises_a_timeout(self, ends):
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            ends[0].receive(0.0)
        assert time.monotonic() - started < 10


def framed(body: bytes) -> bytes:
    return HEADER.pack(len(body), 0) + body


class TestMalformedMessages:
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(b"\xff" * 64, id="garbage"),
            pytest.param(HEADER.pack(MAX_MESSAGE_BYTES + 1, 0), id="oversized"),
            pytest.param(HEADER.pack(2, 1) + b"{}", id="descriptors promised, none sent"),
            pytest.param(framed(b"{"), id="not JSON"),
            pytest.param(framed(b"\xff\xfe{}"), id="not UTF-8"),
            pytest.param(framed(b"[1]"), id="not an object"),
            pytest.param(framed(b""), id="nothing"),
            pytest.param(framed(b"[" * 200_000), id="nested without end"),
            pytest.param(framed(b"9" * 10_000), id="a number without end"),
        ],
    )
    def test_malformed_data_counts_as_a_closed_channel(self, raw, data):
        channel, peer = raw
        peer.sendall(data)
        with pytest.raises(ChannelClosedError):
            channel.receive(30.0)

    def test_a_receiver_may_set_a_lower_limit(self, raw):
        channel, peer = raw
        peer.sendall(framed(b'{"a": []}'))
        with pytest.raises(ChannelClosedError):
            channel.receive(30.0, most_bytes=8)

    @given(data=st.binary(min_size=1, max_size=200))
    def test_any_bytes_give_a_message_or_an_error(self, data):
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        theirs.sendall(data)
        theirs.close()
        try:
            message = channel.receive(30.0)
        except ChannelClosedError:
            pass
        else:
            size, _ = HEADER.unpack_from(data)
            assert json.loads(data[HEADER.size : HEADER.size + size]) == message
        channel.close()

    def test_descriptors_of_a_malformed_message_are_closed(self, raw):
        channel, peer = raw
        before = open_descriptors()
        socket.send_fds(peer, [framed(b"nonsense")], [0, 0, 0])
        with pytest.raises(ChannelClosedError):
            channel.receive_with_fds(30.0)
        assert open_descriptors() == before
