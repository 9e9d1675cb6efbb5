"""The base of both clients: their arguments and one method for each operation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

from rag_assets.client import (
    code_operations,
    experience_operations,
    guideline_operations,
    operations,
    workspace_operations,
)
from rag_assets.client.environment import from_environment
from rag_assets.client.exchange import ClientSettings
from rag_assets.client.methods import list_method_of, method_of

Http = TypeVar("Http")


class BaseClient(ABC, Generic[Http]):
    """A client of the service, with persistent connections.

    Args:
        url: address of the service, such as https://rag.example.
        token: a service token or a JWT; or a function, called before each request, that returns a
            valid token.
        tenant: default tenant for calls that do not name one; required if the token is for several
            tenants.
        project: default project for calls about guidelines or code memory that do not name one.
        timeout: seconds to wait for the service to send data.
        retries: maximum number of further attempts, for repeatable requests and for requests
            refused because the rate was exceeded.
        patience: longest wait before another attempt, in seconds.
        allow_http: whether the token may be sent unencrypted to another machine.

    Raises:
        ConfigurationError: the address is not usable.
    """

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        tenant: str | None = None,
        project: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        patience: float = 30.0,
        allow_http: bool = False,
    ) -> None:
        self._settings = ClientSettings(
            url, token, tenant, timeout, retries, patience, allow_http, project
        )
        self._http = self._connections(self._settings.options())

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Create a client from the variables that rag_assets.client.environment describes.

        Args:
            options: arguments of a client; they override the variables.

        Raises:
            ConfigurationError: the token is missing, or the address is not usable.
        """
        return cls(**{**from_environment(), **options})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url!r})"

    @abstractmethod
    def _connections(self, options: Mapping[str, Any]) -> Http:
        """Create the HTTP client that sends requests."""

    query = method_of(operations.query)
    answer = method_of(operations.answer)
    documents = method_of(operations.documents)
    all_documents = list_method_of(operations.all_documents)
    delete_document = method_of(operations.delete_document)
    put_record = method_of(operations.put_record)
    put_typed_record = method_of(operations.put_typed_record)
    put_record_content = method_of(operations.put_record_content)
    write_records = method_of(operations.write_records)
    record = method_of(operations.record)
    records = method_of(operations.records)
    all_records = list_method_of(operations.all_records)
    reconcile = method_of(operations.reconcile)
    delete_record = method_of(operations.delete_record)
    upload = method_of(operations.upload)
    uploads = method_of(operations.uploads)
    delete_upload = method_of(operations.delete_upload)
    reindex = method_of(operations.reindex)
    events = method_of(operations.events)
    all_events = list_method_of(operations.all_events)
    status = method_of(operations.status)
    workspace_settings = method_of(workspace_operations.workspace_settings)
    change_workspace_settings = method_of(workspace_operations.change_workspace_settings)
    put_page = method_of(workspace_operations.put_page)
    change_page = method_of(workspace_operations.change_page)
    write_tree = method_of(workspace_operations.write_tree)
    reconcile_tree = method_of(workspace_operations.reconcile_tree)
    page = method_of(workspace_operations.page)
    pages = method_of(workspace_operations.pages)
    delete_page = method_of(workspace_operations.delete_page)
    page_access = method_of(workspace_operations.page_access)
    live = method_of(operations.live)
    ready = method_of(operations.ready)
    metrics = method_of(operations.metrics)
    upload_guideline = method_of(guideline_operations.upload_guideline)
    guidelines = method_of(guideline_operations.guidelines)
    all_guidelines = list_method_of(guideline_operations.all_guidelines)
    guideline = method_of(guideline_operations.guideline)
    delete_guideline = method_of(guideline_operations.delete_guideline)
    guideline_context = method_of(guideline_operations.guideline_context)
    guideline_text = method_of(guideline_operations.guideline_text)
    put_guideline_text = method_of(guideline_operations.put_guideline_text)
    put_run = method_of(code_operations.put_run)
    record_run_events = method_of(code_operations.record_run_events)
    retrieve = method_of(code_operations.retrieve)
    index_file = method_of(code_operations.index_file)
    reindex_project = method_of(code_operations.reindex_project)
    invalidate = method_of(code_operations.invalidate)
    put_project = method_of(experience_operations.put_project)
    capture_experience = method_of(experience_operations.capture_experience)
    request_checkpoint = method_of(experience_operations.request_checkpoint)
    checkpoint = method_of(experience_operations.checkpoint)
    experience_for_task = method_of(experience_operations.experience_for_task)
    experience_for_failure = method_of(experience_operations.experience_for_failure)
    experience_context = method_of(experience_operations.experience_context)
    experience_feedback = method_of(experience_operations.experience_feedback)
    patterns = method_of(experience_operations.patterns)
    all_patterns = list_method_of(experience_operations.all_patterns)
    pattern = method_of(experience_operations.pattern)
    merge_pattern = method_of(experience_operations.merge_pattern)
    split_pattern = method_of(experience_operations.split_pattern)
    delete_entry = method_of(experience_operations.delete_entry)
    retract_experience = method_of(experience_operations.retract_experience)
    experience_report = method_of(experience_operations.experience_report)
