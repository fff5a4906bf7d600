"""Commands about this installation: doctor, demo, serve and schema."""
