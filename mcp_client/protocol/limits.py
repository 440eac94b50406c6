"""Every bound of the client, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The bounds of one connection. A test goes one past each of them.

    Sizes are bytes, times are seconds.
    """

    frame_bytes_max: int = 8 * 1024 * 1024
    """One JSON-RPC frame, in either direction, its newline not counted."""
    nesting_depth_max: int = 64
    """Arrays and objects inside one another in a frame: deeper than any real schema."""
    frame_marks_max: int = 320_000
    """Brackets, commas and colons of a received frame outside of its texts: a page of 10,000 small
    tools has 300,011. The costliest that so many make, names, take a tenth of a second; they take
    30 MiB, and half as much again where their texts fill the frame."""
    noise_lines_max: int = 10_000
    """Lines on stdout that are not JSON-RPC: skipped and counted up to here, then the connection ends."""
    pending_requests_max: int = 1_024
    """Requests of one connection in flight: four times the most callers that we measure with."""
    batch_messages_max: int = 256
    """Messages of one array, at the one version that has arrays: a quarter of the calls in flight."""
    outbox_bytes_max: int = 32 * 1024 * 1024
    """Frames queued and not yet written: four of the largest."""
    flush_bytes_max: int = 64 * 1024
    """Frames joined into one write: the usual size of a pipe's buffer."""
    pages_max: int = 1_000
    """Pages of one listing."""
    cursor_chars_max: int = 8_192
    """A cursor of a listing, which is sent back as it came and remembered to find loops."""
    tools_max: int = 20_000
    """Tools of one server."""
    description_chars_max: int = 16_384
    """A tool's description; longer ones are cut, and marked as cut."""
    instructions_chars_max: int = 16_384
    """A server's instructions; longer ones are cut, and marked as cut."""
    name_chars_max: int = 256
    """A tool's name: twice what the specification recommends; a longer one quarantines the tool."""
    schema_bytes_max: int = 256 * 1024
    """One tool's input schema; a larger one quarantines the tool."""
    schema_depth_max: int = 48
    """Arrays and objects inside one another in an input schema: it stands a few deep in its frame."""
    schema_objects_max: int = 10_000
    """Objects in one input schema, every subschema being one."""
    definition_bytes_max: int = 512 * 1024
    """One listed tool, resource, template or prompt, whole; a larger one is quarantined."""
    listing_bytes_max: int = 64 * 1024 * 1024
    """The definitions of one listing together: what a catalogue may take of our memory."""
    listing_seconds_max: float = 120.0
    """One listing from its first page to its last: two pages that take as long as a request may."""
    resources_max: int = 20_000
    """Resources of one server, and again templates."""
    prompts_max: int = 5_000
    """Prompts of one server: people choose from them."""
    prompt_arguments_max: int = 100
    """Arguments of one prompt; one with more is quarantined."""
    icons_max: int = 16
    """Icons of one thing; further ones are left out."""
    uri_chars_max: int = 8_192
    """A URI or a template of URIs: what common servers and proxies take."""
    template_parts_max: int = 32
    """Literals and expressions of a template: matching the longest URI takes a few hundredths of a second."""
    content_blocks_max: int = 1_000
    """Content blocks of one result, contents of one resource, messages of one prompt."""
    completion_values_max: int = 100
    """Values of one completion, as the specification has it; further ones are left out."""
    completion_chars_max: int = 1_024
    """One value of a completion; a longer one is left out, since what is cut completes nothing."""
    completion_seconds_max: float = 5.0
    """From asking for a completion to its answer: somebody is typing meanwhile."""
    subscriptions_max: int = 1_024
    """Resources that one connection is subscribed to."""
    list_change_seconds_min: float = 0.25
    """Between two refreshes of one listing, however often its server tells that it has changed."""
    log_chars_max: int = 4_096
    """One log message of a server; longer ones are cut, and marked as cut."""
    log_messages_max: int = 200
    """Log messages that are passed on at once, and again in each `log_seconds` after."""
    log_seconds: float = 10.0
    """The time in which `log_messages_max` become free again: 20 lines a second can be read by none."""
    peer_message_chars_max: int = 4_096
    """A server's own error text."""
    stderr_tail_bytes_max: int = 16 * 1024
    """The end of stderr that is kept."""
    peer_requests_max: int = 64
    """Answers to requests of the server that wait to be written."""
    handlers_running_max: int = 8
    """Requests of the server that handlers of ours work on at the same time; more are refused."""
    handled_requests_max: int = 60
    """Requests that are handed to handlers at once, and again in each `handled_seconds` after."""
    handled_seconds: float = 60.0
    """The time in which `handled_requests_max` become free again: one a second floods nobody's screen."""
    handler_seconds_max: float = 300.0
    """From handing a request to a handler to its answer: a person reads, thinks, types."""
    roots_max: int = 256
    """Roots granted to one server."""
    form_fields_max: int = 64
    """Fields of one form; one with more is refused."""
    form_options_max: int = 256
    """Values to choose from in one field."""
    form_text_chars_max: int = 64 * 1024
    """One text that is filled into a form."""
    elicitations_max: int = 64
    """Addresses that one error asks to visit, and visits whose end may still be told."""
    sampling_messages_max: int = 1_000
    """Messages of one sampling request, and blocks of one message."""
    sampling_tools_max: int = 128
    """Tools of one sampling request: what common models take."""
    sampling_stops_max: int = 64
    """Stop sequences of one sampling request; one with more is refused."""
    sampling_hints_max: int = 16
    """Names of models that one sampling request would like; further ones are left out."""
    sampling_tokens_max: int = 1_000_000
    """Tokens that one sampling request may ask for."""
    initialize_seconds_max: float = 30.0
    """From the start of a server to its answer to `initialize`: slow interpreters on slow disks."""
    request_seconds_max: float = 60.0
    """From sending a request to its answer, where the caller names no deadline."""
    progress_seconds_max: float = 600.0
    """From sending a request to its end, however much progress resets the clock until then."""
    reconnects_max: int = 5
    """Connections in a row to a server that is gone each time before one of them lasted."""
    reconnect_seconds: float = 0.5
    """Before the first of them; doubled with each further one, so that all take a quarter of a minute."""
    connection_settled_seconds: float = 60.0
    """How long a connection lasts that is not counted: a server that crashes once a minute is used."""
    close_seconds_max: float = 2.0
    """Between end of input and SIGTERM, and again between SIGTERM and SIGKILL."""
