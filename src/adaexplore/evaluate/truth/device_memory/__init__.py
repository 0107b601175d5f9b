"""The memory that the making of truths takes: pieces, room and turns."""
