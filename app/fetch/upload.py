"""Upload of files to a data set repository of the Hugging Face Hub, through its own library.

The token is the library's: HF_TOKEN, or the one that `hf auth login` stored. It is never read here, nor printed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from app.fetch.hub import is_offline, page, silenced
from benchmarks.errors import STOPPED, RashomonError, SpecError

_TARGET = re.compile(r"hub:([A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})")


class UploadError(RashomonError):
    """An upload that the Hub refused, or that could not reach it."""

    exit_code = STOPPED


def repository_name(target: str) -> str:
    """Return the repository in ``hub:OWNER/NAME``. Raises SpecError for another form."""
    match = _TARGET.fullmatch(target)
    if match is None or ".." in target or "--" in target:
        raise SpecError(f"{target!r} names no data set of the Hub; write hub:OWNER/NAME.")
    return match[1]


def check_ready() -> None:
    """Raise UploadError, before anything is asked or sent, if there is no token or the environment demands offline mode."""
    from huggingface_hub import get_token

    if is_offline():
        raise UploadError("HF_HUB_OFFLINE is set, so nothing is sent; unset it and run the same command.")
    if not get_token():
        raise UploadError("you are not logged in to the Hub; log in with `hf auth login`, or set HF_TOKEN.")


def upload(name: str, files: Mapping[str, bytes], *, public: bool, message: str) -> str:
    """Commit ``files`` to the data set ``name``, which is created if necessary, and return the address of its page.

    Unless ``public``, nothing is sent before the Hub confirms that the repository is private. Raises UploadError.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    with _explained(name):
        api = HfApi()
        api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        if not public and not api.repo_info(name, repo_type="dataset").private:
            raise UploadError(
                f"{name} exists on the Hub and is public; name another data set, or add --public to send it there."
            )
        operations = [CommitOperationAdd(path, data) for path, data in files.items()]
        api.create_commit(name, operations, commit_message=message, repo_type="dataset")
    return page(name, "dataset")


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Translate the errors of the Hub's library to an UploadError of one sentence."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    from benchmarks.http_transport import route_hub_library

    route_hub_library()
    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        with silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except HFValidationError as error:
        raise SpecError(f"{name!r} is not a name that the Hub takes; write OWNER/NAME.") from error
    except OfflineModeIsEnabled as error:
        raise UploadError("HF_HUB_OFFLINE is set, so nothing is sent; unset it and run the same command.") from error
    except HfHubHTTPError as error:
        raise UploadError(_refusal(name, error.response.status_code)) from error
    except (httpx2.HTTPError, OSError) as error:
        raise UploadError(
            f"the Hub cannot be reached for {name} ({type(error).__name__}); check the network, then run the same command."
        ) from error
    except (ValueError, KeyError, RuntimeError) as error:  # of the library, for responses that it does not expect
        raise UploadError(f"the Hub's response about {name} is not understood ({type(error).__name__}).") from error
    finally:
        if shown:
            enable_progress_bars()


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
