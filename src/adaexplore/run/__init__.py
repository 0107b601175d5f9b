"""The application: processes, searches, studies and campaigns, without printing."""
