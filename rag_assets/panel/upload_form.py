"""A form with a file; its token is checked before a byte of the file is accepted."""

from __future__ import annotations

from rag_assets.api.upload_form import UploadForm
from rag_assets.panel.guarding import TOKEN_FIELD, require_token


class SignedForm(UploadForm):
    """A form of a page, with the token in a field before the file.

    Args:
        content_type: Content-Type header of the request.
        fields: names of the other fields that the form may have.
        token: request token of the session.
    """

    def __init__(self, content_type: str, fields: frozenset[str], token: str) -> None:
        super().__init__(content_type, fields | {TOKEN_FIELD})
        self._token = token

    def _end_headers(self) -> None:
        super()._end_headers()
        if self._part.is_file:
            require_token(self.values.get(TOKEN_FIELD, ""), self._token)

    def finish(self) -> str:
        """See UploadForm; a form without a file must also contain the token."""
        require_token(self.values.get(TOKEN_FIELD, ""), self._token)
        return super().finish()
