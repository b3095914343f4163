"""What MkDocs calls while it builds the site (`hooks:` in mkdocs.yml)."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from website.outside import outside_files, with_site_links


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for file in outside_files(config):
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return with_site_links(markdown, page.file.src_uri, files)
