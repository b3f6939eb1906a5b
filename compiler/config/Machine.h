//===- Machine.h - what a plan is compiled for ----------------------------===//
#pragma once

#include "core/CostModel.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {

/// How fast bytes move.
struct Link {
  std::string between;       // "ranks" of a host | "device-host" | "host-nvme" | "hosts"
  double bytesPerSecond = 0; // each way
  double latencySeconds = 0; // of one transfer, whatever its size

  bool operator==(const Link &) const = default;
};

/// One rank's share of a machine, from a file of models/machines/. The defaults are those of a file that leaves fields
/// out.
struct Machine {
  std::string name = "cpu";
  std::string device = "cpu"; // "cpu" | "cuda"
  std::string isa;            // e.g. "avx512", cuda: "sm_90"; empty: whatever the machine that runs the plan has
  int64_t ranksPerHost = 1;
  int64_t threads = 8;      // compute workers of a rank that workspaces are cut for; a run may use fewer. cuda: 1
  int64_t alignment = 64;   // bytes, of every offset; a power of two
  int64_t deviceMemory = 0; // bytes a rank; 0: unknown
  int64_t hostMemory = 0;   // bytes a rank; 0: unknown
  int64_t reserve = 0;      // bytes outside the arenas
  int64_t workspaceBytesPerThread = 4 << 20; // bytes
  std::vector<Link> links;                   // none: transfers have no known times
  Rates rates;                               // of one rank

  bool operator==(const Machine &) const = default;
};

/// The machine of a file (a name that ends in .json or has a '/'), or `NAME.json` in the first of `searchDirs` that has
/// it; "" is the built-in `cpu`, and so is "cpu" where no folder has it: what cpu.json says. Throws ds::Error.
Machine loadMachine(const std::string &nameOrPath, std::span<const std::filesystem::path> searchDirs);

/// The machine that `text` (HJSON) describes; `fileName` is for messages. Throws ds::Error.
Machine parseMachine(std::string_view text, const std::string &fileName);

/// 90 of "sm_90" or "sm_90a"; 0 of a text of another form.
int computeCapability(std::string_view isa);

/// "2GiB", "1.5 GB", "4096": a number and B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024); no unit:
/// bytes. `what` names the value in the message. Throws ds::Error.
int64_t parseBytes(std::string_view text, std::string_view what);

} // namespace ds::config
