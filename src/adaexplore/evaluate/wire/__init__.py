"""Messages between the judge and a candidate's process."""
