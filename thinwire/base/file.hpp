// Whole files: written so that a crash leaves the old or the new content, never a part.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

using FileChunks = std::span<const std::span<const std::byte>>;

// Writes the chunks one behind the other into a temporary file in the same folder, syncs it, renames it to `path` and
// syncs the folder. Throws Error kIo with the system's reason and the path (disk full, permission, no such folder);
// whatever was at `path` is then untouched and no temporary file is left. Threads and processes may write the same
// path: one of them wins. A symbolic link is followed: what it leads to is replaced. A device, a pipe or a socket is
// written in place.
void write_file_atomically(const std::string& path, FileChunks chunks);
void write_file_atomically(const std::string& path, std::string_view text);

// Throws Error kIo where write_file_atomically surely would: before hours of work whose result is to be written there.
// Changes nothing at `path`.
void check_writable(const std::string& path);

// Throws Error kNotFound when there is no such file, kIo when it cannot be read.
std::vector<std::byte> read_file(const std::string& path);
std::string read_text_file(const std::string& path);

// A file of one rank of `size`: "{rank}" in `path` replaced; without it, and with several ranks, the rank goes in front
// of the extension, so that ranks never write the same file: "run.jsonl" becomes "run.1.jsonl".
std::string path_of_rank(const std::string& path, int rank, int size);

}  // namespace thinwire
