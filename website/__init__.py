"""The documentation site: what MkDocs is told beside mkdocs.yml."""
