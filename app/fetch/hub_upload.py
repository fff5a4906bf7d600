"""Upload of files to a data set repository of the Hugging Face Hub, through its own library.

The token is the library's: HF_TOKEN, or the one that `hf auth login` stored. It is never printed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.errors import STOPPED, RashomonError, SpecError
from benchmarks.fetch.hub_repository import hub_token, is_id, is_offline, is_private, no_reply, odd_reply, page
from benchmarks.fetch.remote_file import FetchError

_PREFIX = "hub:"
_SECONDS, _BYTES_PER_SECOND = 50.0, 64 * 1024
"""The seconds in which all replies must come, besides those for the bytes that are sent."""


class UploadError(RashomonError):
    """An upload that the Hub refused, or that could not reach it."""

    exit_code = STOPPED


def repository_name(target: str) -> str:
    """Return the repository in ``hub:OWNER/NAME``. Raises SpecError for another form."""
    name = target.removeprefix(_PREFIX)
    if not target.startswith(_PREFIX) or not is_id(name):
        raise SpecError(f"{target!r} names no data set of the Hub; write hub:OWNER/NAME.")
    return name


def check_ready() -> None:
    """Raise UploadError, before anything is asked or sent, if there is no token or the environment demands offline mode."""
    if is_offline():
        raise UploadError("HF_HUB_OFFLINE is set, so nothing is sent; unset it and run the same command.")
    if not hub_token():
        raise UploadError("you are not logged in to the Hub; log in with `hf auth login`, or set HF_TOKEN.")


def upload(name: str, files: Mapping[str, bytes], *, public: bool, message: str) -> str:
    """Commit ``files`` to the data set ``name``, which is created if necessary, and return the address of its page.

    Unless ``public``, nothing is sent before the Hub confirms that the repository is private. Raises UploadError.
    """
    from benchmarks.fetch.deadlines import deadline

    address = page(name, "dataset")
    with deadline(_SECONDS + sum(map(len, files.values())) / _BYTES_PER_SECOND):
        _create(name, public=public)
        _commit(name, files, message, address)
    return address


def _create(name: str, *, public: bool) -> None:
    from huggingface_hub import HfApi

    with _explained(name):
        HfApi(token=hub_token()).create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
    if not (public or _is_private(name)):
        raise UploadError(
            f"{name} exists on the Hub and is public; name another data set, or add --public to send it there."
        )


def _commit(name: str, files: Mapping[str, bytes], message: str, address: str) -> None:
    from huggingface_hub import CommitOperationAdd, HfApi

    operations = [CommitOperationAdd(path, data) for path, data in files.items()]
    with _explained(name, f" Some files may have been sent; see {address}."):
        HfApi(token=hub_token()).create_commit(name, operations, commit_message=message, repo_type="dataset")


def _is_private(name: str) -> bool:
    try:
        return is_private(name, "dataset")
    except FetchError as error:
        raise UploadError(str(error)) from error


@contextmanager
def _explained(name: str, consequence: str = "") -> Iterator[None]:
    """Translate what the Hub's library raises to an UploadError; ``consequence`` follows where it is not known what was done."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    from benchmarks.fetch.hub_library import UnreachableError, guard_library
    from benchmarks.fetch.web_requests import OddReplyError

    guard_library()
    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        with _silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    # For replies that it does not expect, the library fails in any exception; its threads wrap ours in another one.
    except Exception as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        if isinstance(cause, RashomonError):
            raise cause from None
        if isinstance(cause, HfHubHTTPError):
            raise UploadError(_refusal(name, cause.response.status_code)) from error
        if isinstance(cause, UnreachableError):
            raise UploadError(no_reply(name, str(cause)) + consequence) from error
        reason = cause if isinstance(cause, OddReplyError) else f"it led to {type(cause).__name__}"
        raise UploadError(odd_reply(name, reason) + consequence) from error
    finally:
        if shown:
            enable_progress_bars()


@contextmanager
def _silenced() -> Iterator[None]:
    """Silence the log of the Hub's library; the final error is reported anyway."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _refusal(name: str, status: int) -> str:
    if status == 401:
        return "the Hub does not accept your token (401); log in with `hf auth login`, or set HF_TOKEN to a valid one."
    if status == 403:
        return (
            f"the Hub does not let you write {name} (403); use a token with write access to {name.partition('/')[0]}."
        )
    if status == 404:
        return (
            f"the Hub has no place for {name} (404); check the owner's name, and that your token may create data sets."
        )
    if status == 413:
        return f"the Hub finds the files of {name} too large (413); push fewer runs."
    return f"the Hub responds with status {status} for {name}; try again later."
