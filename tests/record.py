"""What the tests of the real Covid-19 record need, since the record is not part of the repository."""

NEEDS_RECORD = """set SPILLOVER_COVID_DATA to the folder with the files of the Covid-19 record; \
docs/covid-data.md says where to get them"""
