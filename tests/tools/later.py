# SPDX-License-Identifier: BSD-3-Clause
"""A build of a release after this tree, for tests of upgrades. It is kept in ~/.cache.

The later release is this tree with the edits below. Versions of the protocol, of the handshake of
pairs, of messages about rails and jobs, of the job socket and of the state files are one higher.
Messages, records, state files, journal and answers carry fields that this tree does not know. The
later release also reads what this tree writes, as any next release must.
"""

import contextlib
import shutil

import earlier
import suites

PLACE = earlier.CACHE.with_name("later")

MORE = "0x7478656e"  # value of most unknown fields

# file -> pairs of a text that occurs once, and its replacement
EDITS = {
    "control/ras/base/versions.c": [
        ("define RAS_PROTOCOL_MAX 3", "define RAS_PROTOCOL_MAX 4"),
    ],
    "control/ras/core/message.h": [
        ("MESSAGE_BRIEF_BYTES 30", "MESSAGE_BRIEF_BYTES 34"),
    ],
    "control/ras/core/message.c": [
        ("wire_put_u64(writer, init->sought);",
         f"wire_put_u64(writer, init->sought); wire_put_u32(writer, {MORE});"),
        ("wire_put_u8(writer, ack->flags);",
         f"wire_put_u8(writer, ack->flags); wire_put_u32(writer, {MORE});"),
        ("wire_put_u64(writer, beat->wall_ns);\n}",
         f"wire_put_u64(writer, beat->wall_ns);\n\twire_put_u32(writer, {MORE});\n}}"),
        ("head.entry_bytes < MESSAGE_BRIEF_BYTES", "head.entry_bytes < 30"),
        ("must(entry_bytes >= MESSAGE_BRIEF_BYTES)", "must(entry_bytes >= 30)"),
        ("entry_bytes - MESSAGE_BRIEF_BYTES", "entry_bytes - 30"),
        ("wire_put_u8(writer, brief->weight);",
         f"wire_put_u8(writer, brief->weight); wire_put_u32(writer, {MORE});"),
        ("MESSAGE_ITEM_LENGTH_BYTES + NEWS_BYTES_MIN;",
         "MESSAGE_ITEM_LENGTH_BYTES + NEWS_BYTES_MIN + 4;"),
        ("NEWS_RECORD | NEWS_DEATH | NEWS_SIGNED)",
         "NEWS_RECORD | NEWS_DEATH | NEWS_SIGNED | 0x80)"),
        ("wire_put_u8(writer, flags);\n\twire_put_u8(writer, news->state);",
         "wire_put_u8(writer, flags | 0x80);\n\twire_put_u8(writer, news->state);"),
        ("wire_patch_u16(writer, length_at,",
         f"wire_put_u32(writer, {MORE}); wire_patch_u16(writer, length_at,"),
        ("// Fields of unknown flags", "if ((flags & 0x80) != 0) (void)wire_get_u32(body);\n\t//"),
    ],
    "control/ras/member/record.c": [
        ("wire_put_bytes(&writer, info->key, sizeof(info->key));",
         "wire_put_bytes(&writer, info->key, sizeof(info->key));"
         f" wire_put_u32(&writer, {MORE});"),
    ],
    "control/ras/relay/relay_packet.h": [
        ("RELAY_HEADER_BYTES 92", "RELAY_HEADER_BYTES 96"),
    ],
    "control/ras/relay/relay_packet.c": [
        ("wire_put_u16(&writer, header->payload_size);",
         f"wire_put_u16(&writer, header->payload_size); wire_put_u32(&writer, {MORE});"),
        ("header.header_size < RELAY_HEADER_BYTES ", "header.header_size < 92 "),
    ],
    "control/ras/collect/payload_comms.c": [
        ("must(wire_writer_finish(&rest, &used) == 0);",
         f"wire_put_u32(&rest, {MORE}); must(wire_writer_finish(&rest, &used) == 0);"),
        ("if (wire_writer_finish(writer, &used) == 0) {\n\t\twire_patch_u32(writer, length,",
         f"wire_put_u32(writer, {MORE});\n\t"
         "if (wire_writer_finish(writer, &used) == 0) {\n\t\twire_patch_u32(writer, length,"),
    ],
    "control/ras/collect/flood.c": [
        # A notice of a kind that only the later release knows, before each other one.
        ("static void notice_originate(struct ras *ras, uint32_t kind, const void *payload,"
         " size_t size) {",
         "static void notice_originate(struct ras *ras, uint32_t kind, const void *payload,"
         " size_t size) {\n\tif (kind != 77) notice_originate(ras, 77, \"next\", 4);"),
    ],
    "control/verdict/engine/observation.c": [
        ("\tsize_t used;\n\n\tif (wire_writer_finish(writer, &used) != 0) {\n\t\t*writer = *before",
         f"\tsize_t used;\n\n\twire_put_u32(writer, {MORE});\n"
         "\tif (wire_writer_finish(writer, &used) != 0) {\n\t\t*writer = *before"),
    ],
    "control/fabric/rail_message.c": [
        ("RAIL_MESSAGE_VERSION 1", "RAIL_MESSAGE_VERSION 2"),
        ("(RAIL_BYTES_MIN + length)", "(RAIL_BYTES_MIN + length + 4)"),
        ("wire_put_bytes(&writer, rail->subnet.bytes, sizeof(rail->subnet.bytes));\n\t}",
         "wire_put_bytes(&writer, rail->subnet.bytes, sizeof(rail->subnet.bytes));\n"
         f"\t\twire_put_u32(&writer, {MORE});\n\t}}\n\twire_put_u32(&writer, {MORE});"),
        ("version == RAIL_MESSAGE_VERSION &&", "version == 1 &&"),
    ],
    "control/fabric/pairing/pairing_message.h": [
        ("PAIRING_VERSION 4", "PAIRING_VERSION 5"),
    ],
    "control/fabric/pairing/pairing_message.c": [
        ("wire_put_u16(&writer, gpu->ordinal);\n\t\t}",
         "wire_put_u16(&writer, gpu->ordinal);\n\t\t}\n"
         f"\t\tif (message->version >= 5) wire_put_u32(&writer, {MORE});"),
        ("end->gpu.ordinal = wire_get_u16(reader);\n\t}",
         "end->gpu.ordinal = wire_get_u16(reader);\n\t}\n"
         "\tif (message->version >= 5) (void)wire_get_u32(reader);"),
    ],
    "control/jobs/host/notice.c": [
        ("define NOTICE_VERSION 2\n", "define NOTICE_VERSION 3\n"),
        ("\t\t(void)overlay_notice_send(host->overlay, JOBHOST_NOTICE, bytes, size);",
         "\t{\n\t\tuint8_t more[8192];\n\t\tmemcpy(more, bytes, size);\n"
         "\t\tmemcpy(more + size, \"next\", 4);\n"
         "\t\t(void)overlay_notice_send(host->overlay, JOBHOST_NOTICE, more, size + 4);\n\t}"),
    ],
    "control/jobs/host/connection.c": [
        # An event of a kind that only the later library knows.
        ("connection_send_packet(connection, &done, sizeof(done));",
         "connection_send_packet(connection, &done, sizeof(done));\n"
         "\tconst struct job_event next = {\n"
         "\t\t.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EVENT},\n"
         "\t\t.comm = done.comm, .kind = 99, .rank = TOCSIN_NO_RANK};\n"
         "\tconnection_send_event(connection, &next);"),
    ],
    "control/overlay/maintenance.c": [
        ("MAINTENANCE_VERSION 1", "MAINTENANCE_VERSION 2"),
        ("version != MAINTENANCE_VERSION", "version > MAINTENANCE_VERSION"),
        ('"{s:i,s:s,s:O,s:I,s:o}", "version",',
         '"{s:i,s:i,s:s,s:O,s:I,s:o}", "next", 1, "version",'),
    ],
    "control/overlay/maintenance_detail.c": [
        ("return json_pack(\n\t\t\"{s:s,", "return json_pack(\n\t\t\"{s:i,s:s,"),
        ('"node", detail->node,', '"next", 1, "node", detail->node,'),
    ],
    "control/overlay/member_list.c": [
        ("MEMBER_LIST_VERSION 1", "MEMBER_LIST_VERSION 2"),
        ("version != MEMBER_LIST_VERSION", "version > MEMBER_LIST_VERSION"),
        ('"{s:i,s:s,s:s,s:o}", "version", MEMBER',
         '"{s:i,s:i,s:s,s:s,s:o}", "next", 1, "version", MEMBER'),
        ('"{s:s,s:s,s:s,s:I,s:b}", "address", address',
         '"{s:i,s:s,s:s,s:s,s:I,s:b}", "next", 1, "address", address'),
    ],
    "control/include/control/path_book.h": [
        ("PATH_BOOK_VERSION 1", "PATH_BOOK_VERSION 2"),
    ],
    "control/overlay/path_book.c": [
        ("version == PATH_BOOK_VERSION", "version <= PATH_BOOK_VERSION"),
        ("version != PATH_BOOK_VERSION", "version > PATH_BOOK_VERSION"),
    ],
    "control/overlay/state_file.c": [
        ("if (event->text[0] != '\\0')",
         "json_object_set_new(object, \"next\", json_integer(1));\n\tif (event->text[0] != '\\0')"),
    ],
    "control/include/control/history_block.h": [
        ("HISTORY_VERSION 1", "HISTORY_VERSION 2"),
    ],
    "control/history/history_block.c": [
        ("version != HISTORY_VERSION", "version > HISTORY_VERSION"),
        ("return item_append(block, HISTORY_ITEM_NODE, &body);",
         "return item_append(block, 77, &body) && item_append(block, HISTORY_ITEM_NODE, &body);"),
    ],
    "control/verdict/answers/answer_health.c": [
        ('"{s:s,s:o,s:o,s:s,s:s,s:I,s:I,s:s,s:i,', '"{s:o,s:s,s:o,s:o,s:s,s:s,s:I,s:I,s:s,s:i,'),
        ('"grade", finding_grade_name(survey->grade),',
         '"next", json_array(), "grade", finding_grade_name(survey->grade),'),
    ],
    "control/members/answer_peers.c": [
        ('"{s:I,s:s,s:b,s:b,', '"{s:o,s:I,s:s,s:b,s:b,'),
        ('"view", (json_int_t)view.number,',
         '"next", json_object(), "view", (json_int_t)view.number,'),
    ],
    "lib/contact.c": [
        ("CLIENT PROTOCOL 2", "CLIENT PROTOCOL 3"),
    ],
    "lib/job/include/tocsin/job_socket.h": [
        ("JOB_SOCKET_VERSION 2u", "JOB_SOCKET_VERSION 3u"),
    ],
    "lib/job/include/tocsin/job_page.h": [
        ("JOB_PAGE_VERSION 2u", "JOB_PAGE_VERSION 3u"),
    ],
    "lib/job/send.c": [
        (".start_time = job->start_time,", ".unused = 7, .start_time = job->start_time,"),
    ],
    "lib/job/comm.c": [
        (".flags = config.flags,", ".flags = config.flags | 1u << 20,"),
    ],
    "lib/job/page.c": [
        # A mark of a communicator that only the later agent knows.
        ("*comm) {\n\tatomic_store_explicit(\n\t\t&job->page->launched[comm->first_slot].marks.reg",
         "*comm) {\n\tatomic_fetch_or(&job->page->launched[comm->first_slot].marks.flags,"
         " 1u << 20);\n\tatomic_store_explicit("
         "\n\t\t&job->page->launched[comm->first_slot].marks.reg"),
    ],
}


def edit(path, text):
    """Return the text of one file as the later release has it."""
    for old, new in EDITS.get(path, ()):
        assert text.count(old) == 1, f"{path}: {text.count(old)} times, not once: {old!r}"
        text = text.replace(old, new)
    return earlier.append_to_version(text, "later") if path == "meson.build" else text


def sources():
    """Yield the tracked files of this tree, as they are on the disk, with all edits."""
    for name in earlier.run("git", "-C", earlier.ROOT, "ls-files", "-z").decode().split("\0"):
        path = earlier.ROOT / name
        if name and path.is_file():
            yield name, edit(name, path.read_text()).encode() if name in {*EDITS, "meson.build"} \
                else path.read_bytes()


def write_source(source):
    """Write the files of the later release. A file with the right content is left alone, so that
    ninja builds only what changed."""
    wanted = dict(sources())
    for name, content in wanted.items():
        path = source / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        shutil.copymode(earlier.ROOT / name, path)
    for path in source.rglob("*"):
        name = path.relative_to(source)
        if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
            path.unlink()


@contextlib.contextmanager
def build():
    """Make the build. Yields its directory, which no other tree changes before the end."""
    with earlier.locked(PLACE):
        directory = PLACE / "build"
        write_source(PLACE)
        if not (directory / "build.ninja").exists():
            earlier.run(suites.tool("meson"), "setup", directory, PLACE,
                        env=earlier.environment())
        earlier.run(suites.tool("ninja"), "-C", directory, *earlier.PROGRAMS,
                    env=earlier.environment())
        yield directory
