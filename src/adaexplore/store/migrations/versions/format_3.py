"""Format 3: asks name those that were opened with them, and what others in flight write."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add the columns; every earlier ask was opened alone and knew of no other."""
    op.add_column("asks", sa.Column("batch", sa.Integer, nullable=False, server_default="0"))
    op.add_column("asks", sa.Column("others", sa.Text, nullable=False, server_default="[]"))
    op.execute(sa.text("UPDATE run SET format_version = 3"))
