import errno
import os
from pathlib import Path

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import MOST_BYTES, require_writable, why_unread, write_whole


def test_a_file_is_replaced_and_its_link_stays(tmp_path):
    file, link = tmp_path / "out.txt", tmp_path / "link.txt"
    file.write_text("old")
    link.symlink_to(file.name)
    write_whole(link, "nü")
    assert (file.read_text(encoding="utf-8"), link.is_symlink()) == ("nü", True)
    write_whole(file, b"\xff")
    assert file.read_bytes() == b"\xff"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    file = tmp_path / "out.txt"
    file.write_text("old")

    def write_half(self: Path, data: bytes) -> None:
        with self.open("wb") as opened:
            opened.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(BadInputError, match=f"^cannot write {file}: No space left on device$"):
        write_whole(file, "new and long")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["", "none/out.txt", "file/out.txt"])
@pytest.mark.parametrize("write", [require_writable, lambda path: write_whole(path, "text")])
def test_a_place_that_cannot_be_written(tmp_path, name, write):
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match=r"^cannot write .*: "):
        write(tmp_path / name)


@pytest.mark.parametrize("name", ["file", "new", "/dev/null"])
def test_a_place_that_can_be_written_is_left_as_it_is(tmp_path, name):
    (tmp_path / "file").write_text("text")
    assert require_writable(tmp_path / name) == tmp_path / name
    assert [file.read_text() for file in tmp_path.iterdir()] == ["text"]


def test_a_pipe_is_written_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_what_is_not_read(tmp_path):
    pipe, large, small = tmp_path / "pipe", tmp_path / "large", tmp_path / "small"
    os.mkfifo(pipe)
    small.write_text("x")
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert why_unread(pipe) == why_unread(Path("/dev/zero")) == "is no regular file"
    assert why_unread(large) == "is larger than 16 MiB"
    assert why_unread(small) == why_unread(tmp_path) == why_unread(Path(os.devnull)) == ""
