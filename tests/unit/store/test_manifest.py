"""The manifest of a campaign on disk."""

import json

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.store.campaign import create_campaign, read_manifest


def test_what_was_written_is_read_back(tmp_path):
    create_campaign(tmp_path / "many", {"runs": ["a", "b"]})
    assert read_manifest(tmp_path / "many") == {"runs": ["a", "b"]}


def test_the_next_format_is_refused_in_one_line(tmp_path):
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps({"format": 2, "runs": []}))
    with pytest.raises(BadInputError) as caught:
        read_manifest(tmp_path)
    assert str(caught.value) == (
        f"{path} is in campaign format 2, this release reads 1; upgrade adaexplore"
    )
