//===- nvme_speed.cpp - how fast a rank's file is -------------------------===//
//
// nvme-speed FOLDER BYTES BLOCK DEPTH CALL [checksums]: writes a file of BYTES in calls of CALL bytes each, writes it
// again, reads it, reads one half while another thread writes the other, and prints bytes per second of each as a line
// of JSON. The first time the file system has more to do, and a training run meets it once. "at_once" is the slower way
// while both are under way.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/nvme/NvmeFile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <sys/mman.h>

namespace {

using namespace ds;
using runtime::NvmeFile;

constexpr size_t alignment = size_t(2) << 20; // of a huge page

struct Free {
  void operator()(std::byte *memory) const { std::free(memory); }
};

void require(const Status &status) {
  if (!status.ok())
    throw Error(status.message());
}

/// Memory of one call, filled with what a disk cannot pack.
std::unique_ptr<std::byte[], Free> makeMemory(uint64_t call, bool huge) {
  const size_t bytes = (call + alignment - 1) / alignment * alignment;
  std::unique_ptr<std::byte[], Free> memory(static_cast<std::byte *>(std::aligned_alloc(alignment, bytes)));
  if (!memory)
    throw Error("no memory for a call of " + std::to_string(call) + " bytes");
  if (::madvise(memory.get(), bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0)
    throw Error(std::string("the kernel cannot be told the size of pages: ") + std::strerror(errno));
  std::mt19937_64 generator(1);
  for (uint64_t at = 0; at < call; ++at)
    memory[at] = std::byte(generator());
  return memory;
}

/// Bytes per second of `move`, called for each piece of [begin, end).
template <typename Move> double speed(uint64_t begin, uint64_t end, uint64_t call, Move &&move) {
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t at = begin; at < end; at += call)
    require(move(at, std::min(call, end - at)));
  return double(end - begin) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(NvmeFile &file, uint64_t call, bool huge) {
  const auto source = makeMemory(call, huge), target = makeMemory(call, huge);
  const auto write = [&](uint64_t at, uint64_t bytes) { return file.write(at, std::span(source.get(), bytes)); };
  const auto read = [&](uint64_t at, uint64_t bytes) { return file.read(at, std::span(target.get(), bytes)); };
  const uint64_t all = file.bytes(), half = all / 2;
  const double first = speed(0, all, call, write), again = speed(0, all, call, write);
  const double reads = speed(0, all, call, read);
  auto writer = std::async(std::launch::async, [&] { return speed(half, all, call, write); });
  const double besideWrites = speed(0, half, call, read);
  std::printf("{\"first_write\": %.0f, \"write\": %.0f, \"read\": %.0f, \"at_once\": %.0f, \"note\": \"%s\"}\n", first,
              again, reads, std::min(besideWrites, writer.get()), file.note().c_str());
}

} // namespace

int main(int count, char **words) {
  if (count < 6) {
    std::fputs("usage: nvme-speed FOLDER BYTES BLOCK DEPTH CALL [huge] [checksums]\n", stderr);
    return 2;
  }
  try {
    runtime::NvmeOptions options;
    options.blockBytes = std::stoull(words[3]);
    options.queueDepth = std::stoi(words[4]);
    const auto has = [&](const char *word) {
      return std::find(words + 6, words + count, std::string(word)) != words + count;
    };
    options.checksums = has("checksums");
    NvmeFile file(words[1], 0, std::stoull(words[2]), options);
    measure(file, std::stoull(words[5]), has("huge"));
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
