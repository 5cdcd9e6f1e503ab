"""THE table of routes: it makes Starlette's routes, the guard, the OpenAPI document, docs/authz.md, the authz test."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import Route

from hango.api import (
    agents,
    api_keys,
    audit,
    context,
    context_overrides,
    documents,
    files,
    health,
    imports,
    run_calls,
    runs,
    session_messages,
    sessions,
    summaries,
    summary_previews,
    tenant,
    tries,
    try_batches,
    usage,
    users,
)
from hango.api.agent_bodies import AgentIn, AgentPatch
from hango.api.authz import (
    ADMIN,
    ADMIN_USER,
    MEMBER,
    OWN_KEY,
    PUBLIC,
    READ_AGENT,
    READ_BATCH,
    READ_PREVIEW,
    READ_RUN,
    READ_SESSION,
    READ_TRY,
    WRITE_AGENT,
    WRITE_SESSION,
)
from hango.api.endpoint import Endpoint, Row
from hango.api.fields import PageQuery, SearchQuery
from hango.api.headers import (
    ETAG,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    LOCATION,
    PREFER,
    PREFERENCE_APPLIED,
    RETRY_AFTER,
)
from hango.api.listing import Listing
from hango.api.try_replies import BatchCheckOut, BatchOut, TryOut
from hango.api.waiting import WaitQuery
from hango.chain.full_part import FullPart
from hango.chain.snapshot import Snapshot

AGENT = "/v1/agents/{agent_id}"
SESSION = "/v1/sessions/{session_id}"
RUN = "/v1/runs/{run_id}"
TRY = "/v1/tries/{try_id}"
PREVIEW = "/v1/summary-previews/{preview_id}"
BATCH = "/v1/try-batches/{batch_id}"
CONTEXT = (Snapshot, FullPart, context.ProviderRequest)
STARTS = (IDEMPOTENCY_KEY, PREFER)
STARTED = (LOCATION, PREFERENCE_APPLIED, RETRY_AFTER)
WAITED = (PREFERENCE_APPLIED, RETRY_AFTER)

# fmt: off
ROUTES: tuple[Row, ...] = (
    Row("GET", "/v1/me", MEMBER, tenant.show_me, "Who the key stands for", tenant.MeOut),

    Row("GET", "/v1/agents", MEMBER, agents.list_agents, "List agents", Listing[agents.AgentOut], query=SearchQuery),
    Row("POST", "/v1/agents", MEMBER, agents.create_agent, "Create an agent", agents.AgentOut, AgentIn, status=201),
    Row("GET", AGENT, READ_AGENT, agents.show_agent, "Show an agent", agents.AgentOut),
    Row("PATCH", AGENT, WRITE_AGENT, agents.update_agent, "Change an agent", agents.AgentOut, AgentPatch),
    Row("DELETE", AGENT, WRITE_AGENT, agents.delete_agent, "Delete an agent", status=204),

    Row("GET", AGENT + "/files", READ_AGENT, files.list_files, "List an agent's files",
        Listing[files.FileEntryOut], query=files.FilesQuery),
    Row("GET", AGENT + "/files/{path:path}", READ_AGENT, files.show_file, "Read a file", files.FileOut),
    Row("PUT", AGENT + "/files/{path:path}", WRITE_AGENT, files.write_file, "Write a file; 201 when it was not there",
        files.FileOut, files.FileIn, also=(201,)),
    Row("DELETE", AGENT + "/files/{path:path}", WRITE_AGENT, files.delete_file, "Delete a file", status=204),

    Row("GET", "/v1/sessions", MEMBER, sessions.list_sessions, "List sessions",
        Listing[sessions.SessionOut], query=sessions.SessionsQuery),
    Row("POST", "/v1/sessions", MEMBER, sessions.create_session, "Create a session, with its history so far",
        sessions.SessionOut, sessions.SessionIn, status=201),
    Row("GET", SESSION, READ_SESSION, sessions.show_session, "Show a session", sessions.SessionOut),
    Row("DELETE", SESSION, WRITE_SESSION, sessions.delete_session, "Delete a session", status=204),
    Row("GET", SESSION + "/messages", READ_SESSION, session_messages.list_messages, "List the persisted messages",
        session_messages.MessagesOut, query=session_messages.MessagesQuery),
    Row("POST", SESSION + "/messages", WRITE_SESSION, session_messages.append_messages, "Append messages",
        session_messages.AppendedOut, session_messages.MessagesIn, status=201, refuses=(409,)),

    Row("POST", "/v1/imports", MEMBER, imports.import_file, "Import a transcript or request body as people have it",
        imports.ImportedOut, query=imports.ImportQuery, status=201,
        takes="The file: JSON Lines up to HANGO_IMPORT_MAX, any other format up to 64 MiB."),

    Row("GET", SESSION + "/context", READ_SESSION, context.show_context, "What the next model request would contain",
        CONTEXT, query=context.ContextQuery),
    Row("POST", SESSION + "/context/preview", READ_SESSION, context.preview_context, "The same, with unsaved overrides",
        CONTEXT, context.PreviewIn, query=context.ContextQuery),

    Row("GET", AGENT + "/context-overrides", READ_AGENT, context_overrides.show_agent_overrides,
        "The agent's saved overrides of system and tool parts", context_overrides.OverridesOut, gives=(ETAG,)),
    Row("PUT", AGENT + "/context-overrides", WRITE_AGENT, context_overrides.put_agent_overrides,
        "Replace them; an empty list clears", context_overrides.OverridesOut,
        context_overrides.OverridesIn, query=context_overrides.OverridesQuery, refuses=(412,), asks=(IF_MATCH,),
        gives=(ETAG,)),
    Row("GET", SESSION + "/context-overrides", READ_SESSION, context_overrides.show_session_overrides,
        "The session's saved overrides of messages and the summary", context_overrides.OverridesOut, gives=(ETAG,)),
    Row("PUT", SESSION + "/context-overrides", WRITE_SESSION, context_overrides.put_session_overrides,
        "Replace them; an empty list clears", context_overrides.OverridesOut,
        context_overrides.OverridesIn, query=context_overrides.OverridesQuery, refuses=(412,), asks=(IF_MATCH,),
        gives=(ETAG,)),

    Row("POST", SESSION + "/runs", WRITE_SESSION, runs.start_run, "Run: say something, or let the agent go on",
        runs.RunOut, runs.RunIn, query=WaitQuery, status=202, also=(200,), refuses=(402, 409), asks=STARTS,
        gives=STARTED),
    Row("GET", SESSION + "/runs", READ_SESSION, runs.list_runs, "List a session's runs", Listing[runs.RunOut],
        query=PageQuery),
    Row("GET", RUN, READ_RUN, runs.show_run, "A run, or its end when it comes in time", runs.RunOut, query=WaitQuery,
        asks=(PREFER,), gives=WAITED),
    Row("POST", RUN + "/cancel", READ_RUN, runs.cancel_run, "Cancel a run", runs.RunOut, also=(202,)),

    Row("POST", SESSION + "/summary/preview", READ_SESSION, summary_previews.start_preview,
        "Ask for the summary that a run would make, and save nothing", summary_previews.SummaryPreviewOut,
        query=WaitQuery, status=202, also=(200,), refuses=(402, 422), asks=STARTS, gives=STARTED),
    Row("GET", PREVIEW, READ_PREVIEW, summary_previews.show_preview,
        "A summary's preview, or its end when it comes in time", summary_previews.SummaryPreviewOut, query=WaitQuery,
        asks=(PREFER,), gives=WAITED),
    Row("PUT", SESSION + "/summary", WRITE_SESSION, summaries.put_summary, "Put a summary in force",
        summaries.SummaryOut, summaries.SummaryIn, refuses=(409,)),
    Row("DELETE", SESSION + "/summary", WRITE_SESSION, summaries.undo_summary, "Take the last summary back",
        status=204, refuses=(409,)),
    Row("GET", RUN + "/calls", READ_RUN, run_calls.list_calls, "List the model calls of a run",
        Listing[run_calls.RunCallOut], query=PageQuery),
    Row("GET", RUN + "/calls/{n}/context", READ_RUN, run_calls.show_call, "What the model saw then, or what changed",
        (run_calls.PastContextOut, run_calls.ContextDiffOut), query=run_calls.CallContextQuery),

    Row("POST", SESSION + "/context/try", READ_SESSION, tries.start_try, "Try a changed context with one model call",
        TryOut, tries.TryIn, query=WaitQuery, status=202, also=(200,), refuses=(402,), asks=STARTS, gives=STARTED),
    Row("GET", SESSION + "/tries", READ_SESSION, tries.list_tries, "List a session's tries, without texts and answers",
        Listing[TryOut], query=PageQuery),
    Row("GET", TRY, READ_TRY, tries.show_try, "A try, or its end when it comes in time", TryOut, query=WaitQuery,
        asks=(PREFER,), gives=WAITED),
    Row("POST", TRY + "/cancel", READ_TRY, tries.cancel_try, "Cancel a try", TryOut, also=(202,)),
    Row("POST", SESSION + "/context/try-batches", READ_SESSION, try_batches.start_batch,
        "Try many variants of a context, all on one base", (BatchOut, BatchCheckOut), try_batches.BatchIn,
        query=try_batches.BatchQuery, status=202, also=(200,), refuses=(402,), asks=STARTS, gives=STARTED),
    Row("GET", SESSION + "/try-batches", READ_SESSION, try_batches.list_batches, "List a session's batches",
        Listing[BatchOut], query=PageQuery),
    Row("GET", BATCH, READ_BATCH, try_batches.show_batch, "A batch, or its end when it comes in time",
        BatchOut, query=WaitQuery, asks=(PREFER,), gives=WAITED),
    Row("POST", BATCH + "/cancel", READ_BATCH, try_batches.cancel_batch, "Cancel what of a batch has not ended",
        BatchOut, also=(202,)),
    Row("GET", BATCH + "/tries", READ_BATCH, try_batches.list_batch_tries,
        "List a batch's tries, without texts and answers", Listing[TryOut], query=PageQuery),

    Row("GET", "/v1/api-keys", MEMBER, api_keys.list_keys, "List API keys: the own ones, for an admin all",
        Listing[api_keys.KeyOut], query=PageQuery),
    Row("POST", "/v1/api-keys", MEMBER, api_keys.create_key, "Create an API key; its secret is shown once",
        api_keys.NewKeyOut, api_keys.KeyIn, status=201, refuses=(409,)),
    Row("DELETE", "/v1/api-keys/{key_id}", OWN_KEY, api_keys.revoke_key, "Revoke an API key", status=204),

    Row("GET", "/v1/users", ADMIN, users.list_users, "List users", Listing[users.UserOut], query=PageQuery),
    Row("POST", "/v1/users", ADMIN, users.create_user, "Create a user", users.UserOut, users.UserIn, status=201),
    Row("PATCH", "/v1/users/{user_id}", ADMIN_USER, users.update_user, "Change a user",
        users.UserOut, users.UserPatch, refuses=(409,)),

    Row("GET", "/v1/tenant", ADMIN, tenant.show_tenant, "Show the tenant", tenant.TenantOut),
    Row("PATCH", "/v1/tenant", ADMIN, tenant.update_tenant, "Change the tenant", tenant.TenantOut, tenant.TenantPatch),
    Row("GET", "/v1/usage", ADMIN, usage.show_usage, "Usage by group", usage.UsageOut, query=usage.UsageQuery),
    Row("GET", "/v1/usage/records", ADMIN, usage.list_records, "Usage, call by call",
        Listing[usage.UsageRecordOut], query=usage.RecordsQuery),
    Row("GET", "/v1/audit", ADMIN, audit.list_audit, "The audit log", Listing[audit.AuditOut], query=PageQuery),

    Row("GET", "/healthz", PUBLIC, health.show_live, "The process is up", health.LiveOut),
    Row("GET", "/readyz", PUBLIC, health.show_ready, "The process can work", health.ReadyOut),
    Row("GET", "/openapi.json", PUBLIC, documents.show_openapi, "This API as an OpenAPI 3.1 document", dict),
    Row("GET", "/docs", PUBLIC, documents.show_page, "This API as a page for people", str, media_type="text/html"),
)
# fmt: on


def starlette_routes(rows: Iterable[Row] = ROUTES) -> list[Route]:
    """One route a path: a method that it does not take is answered by the path itself."""
    by_path: dict[str, list[Row]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    return [Route(path, Endpoint(group)) for path, group in by_path.items()]
