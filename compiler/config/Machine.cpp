//===- Machine.cpp - machine files ----------------------------------------===//
#include "compiler/config/Machine.h"

#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/NearestName.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ds::config {
namespace {

constexpr int64_t mostBytes = int64_t(1) << 60;

constexpr std::string_view fields[] = {"alignment", "device",        "device_memory", "host_memory",
                                       "isa",       "links",         "name",          "ranks_per_host",
                                       "rates",     "reserve_bytes", "threads",       "workspace_bytes_per_thread"};
constexpr std::string_view rateFields[] = {"attention_tflops", "bfloat16_tflops", "command_us",      "float32_tflops",
                                           "fp8_tflops",       "memory_gb_per_s", "multiprocessors", "tf32_tflops"};
constexpr std::string_view ratesThatMayLack[] = {"command_us", "fp8_tflops", "multiprocessors"};
constexpr std::string_view linkNames[] = {"device-host", "host-nvme", "hosts", "ranks"};
constexpr std::string_view linkFields[] = {"bandwidth_gb_per_s", "between", "latency_us"};

std::string shortNumber(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", number);
  return text.data();
}

/// The fields of one object of a file, with messages that name the file, the line and the field.
class FieldReader {
public:
  FieldReader(const Node &root, std::span<const std::string_view> names, const std::string &fileName)
      : root_(root), fileName_(fileName) {
    for (const Member &m : root.members)
      if (std::find(names.begin(), names.end(), m.key) == names.end())
        refuse(m.value, printable(m.key), "no such field; the nearest is " + std::string(nearestName(m.key, names)));
  }

  void text(std::string_view field, std::string &value) const {
    const Node *node = member(root_, field);
    if (!node)
      return;
    if (node->kind != Node::Kind::String || node->text.empty() || node->text.size() > 100)
      refuse(*node, field, "it takes a short text");
    value = node->text;
  }

  void count(std::string_view field, int64_t &value, int64_t low, int64_t high) const {
    const Node *node = member(root_, field);
    if (!node)
      return;
    if (node->kind != Node::Kind::Int || node->integer < low || node->integer > high)
      refuse(*node, field, "it takes a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    value = node->integer;
  }

  /// 0 where there is none.
  double number(std::string_view field, double low, double high) const {
    const Node *node = member(root_, field);
    if (!node)
      return 0;
    const bool isNumber = node->kind == Node::Kind::Int || node->kind == Node::Kind::Float;
    if (!isNumber || !(node->number >= low && node->number <= high))
      refuse(*node, field, "it takes a number from " + shortNumber(low) + " to " + shortNumber(high));
    return node->number;
  }

  void bytes(std::string_view field, int64_t &value) const {
    const Node *node = member(root_, field);
    if (!node)
      return;
    const bool size = node->kind == Node::Kind::String;
    if (size)
      value = parseBytes(node->text, fileName_ + ":" + std::to_string(node->line) + ": " + std::string(field));
    else if (node->kind == Node::Kind::Int)
      value = node->integer;
    if ((!size && node->kind != Node::Kind::Int) || value < 0 || value > mostBytes)
      refuse(*node, field, "it takes a number of bytes or a size such as \"80GiB\"");
  }

  [[noreturn]] void refuse(const Node &value, std::string_view field, const std::string &reason) const {
    throw Error(fileName_ + ":" + std::to_string(value.line) + ": " + std::string(field) + " is " + shortJson(value) +
                "; " + reason);
  }

private:
  const Node &root_;
  const std::string &fileName_;
};

std::string readFile(const std::filesystem::path &path) {
  if (isFolder(path))
    throw Error("--machine " + path.string() + ": is a folder; name a file");
  if (std::optional<std::string> text = readWhole(path, hjsonSizeLimit + 1))
    return *std::move(text);
  throw Error("--machine " + path.string() + ": cannot be opened: " + std::strerror(errno));
}

bool isFileName(const std::string &name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

/// Names of the machines in the folders, for the message that one is missing.
std::string machinesIn(std::span<const std::filesystem::path> folders) {
  std::vector<std::string> names{"cpu"};
  for (const std::filesystem::path &folder : folders) {
    std::error_code missing;
    for (const auto &entry : std::filesystem::directory_iterator(folder, missing))
      if (entry.path().extension() == ".json")
        names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

Link parseLink(const Node &node, const FieldReader &file, const std::string &fileName) {
  if (!member(node, "between") || !member(node, "bandwidth_gb_per_s"))
    file.refuse(node, "links", "a link takes \"between\" and \"bandwidth_gb_per_s\"");
  const FieldReader read(node, linkFields, fileName);
  Link link;
  read.text("between", link.between);
  if (std::ranges::find(linkNames, link.between) == std::end(linkNames))
    read.refuse(*member(node, "between"), "between", "no such link; there are device-host, host-nvme, hosts and ranks");
  link.bytesPerSecond = read.number("bandwidth_gb_per_s", 1e-6, 1e6) * 1e9;
  link.latencySeconds = read.number("latency_us", 0, 1e6) / 1e6;
  return link;
}

Rates parseRates(const Node &node, const FieldReader &file, const std::string &fileName) {
  if (node.kind != Node::Kind::Object)
    file.refuse(node, "rates", "it takes an object");
  for (std::string_view field : rateFields)
    if (!std::ranges::count(ratesThatMayLack, field) && !member(node, field))
      file.refuse(node, "rates", "it lacks \"" + std::string(field) + "\"");
  const FieldReader read(node, rateFields, fileName);
  const auto flops = [&](std::string_view field) { return read.number(field, 1e-3, 1e6) * 1e12; };
  int64_t multiprocessors = 0;
  read.count("multiprocessors", multiprocessors, 1, 1 << 16);
  return {.bytes = read.number("memory_gb_per_s", 1e-3, 1e6) * 1e9,
          .commandSeconds = read.number("command_us", 0, 1e6) / 1e6,
          .float32 = flops("float32_tflops"),
          .tf32 = flops("tf32_tflops"),
          .bfloat16 = flops("bfloat16_tflops"),
          .fp8 = flops("fp8_tflops"),
          .attention = flops("attention_tflops"),
          .multiprocessors = double(multiprocessors)};
}

/// What cpu.json says, for where there is no such file.
Machine builtInCpu() {
  Machine machine;
  machine.links = {
      {"ranks", 10e9, 1e-6}, {"device-host", 5e9, 1e-6}, {"host-nvme", 2e9, 100e-6}, {"hosts", 1.25e9, 30e-6}};
  return machine;
}

} // namespace

Machine parseMachine(std::string_view text, const std::string &fileName) {
  const Node root = parseHjson(text, fileName);
  if (root.members.empty())
    throw Error(fileName + ": says nothing of a machine; give it at least \"device\", or name one of models/machines");
  const FieldReader read(root, fields, fileName);
  Machine machine;
  machine.name = std::filesystem::path(fileName).stem().string();
  read.text("name", machine.name);
  read.text("device", machine.device);
  if (machine.device != "cpu" && machine.device != "cuda")
    read.refuse(*member(root, "device"), "device", "it takes \"cpu\" or \"cuda\"");
  read.text("isa", machine.isa);
  if (machine.device == "cuda" && !machine.isa.empty() && computeCapability(machine.isa) == 0)
    read.refuse(*member(root, "isa"), "isa", "device cuda takes a compute capability such as \"sm_90\"");
  read.count("ranks_per_host", machine.ranksPerHost, 1, 1 << 16);
  machine.threads = machine.device == "cpu" ? machine.threads : 1;
  read.count("threads", machine.threads, 1, 1 << 12);
  if (machine.device != "cpu" && machine.threads != 1)
    read.refuse(*member(root, "threads"), "threads",
                "kernels of device " + machine.device + " are not cut for workers; leave it out");
  read.count("alignment", machine.alignment, 64, 1 << 21);
  if (!std::has_single_bit(uint64_t(machine.alignment)))
    read.refuse(*member(root, "alignment"), "alignment", "it takes a power of two");
  read.bytes("device_memory", machine.deviceMemory);
  read.bytes("host_memory", machine.hostMemory);
  read.bytes("reserve_bytes", machine.reserve);
  read.bytes("workspace_bytes_per_thread", machine.workspaceBytesPerThread);
  if (const Node *links = member(root, "links")) {
    if (links->kind != Node::Kind::Array)
      read.refuse(*links, "links", "it takes a list of links");
    for (const Node &link : links->items) {
      machine.links.push_back(parseLink(link, read, fileName));
      if (std::ranges::count(machine.links, machine.links.back().between, &Link::between) > 1)
        read.refuse(*member(link, "between"), "between", "it stands twice; remove one of them");
    }
  }
  if (const Node *rates = member(root, "rates"))
    machine.rates = parseRates(*rates, read, fileName);
  return machine;
}

Machine loadMachine(const std::string &nameOrPath, std::span<const std::filesystem::path> searchDirs) {
  if (nameOrPath.empty())
    return builtInCpu();
  if (isFileName(nameOrPath))
    return parseMachine(readFile(nameOrPath), nameOrPath);
  for (const std::filesystem::path &folder : searchDirs) {
    const std::filesystem::path file = folder / (nameOrPath + ".json");
    if (isThere(file))
      return parseMachine(readFile(file), file.string());
  }
  if (nameOrPath == "cpu")
    return builtInCpu();
  throw Error("--machine " + printable(nameOrPath) + ": there is no machine of this name; there are " +
              machinesIn(searchDirs) + ", or name a file");
}

int computeCapability(std::string_view isa) {
  if (!isa.starts_with("sm_"))
    return 0;
  int number = 0;
  const char *end = isa.data() + isa.size();
  const auto [rest, error] = std::from_chars(isa.data() + 3, end, number);
  const bool variant = rest + 1 == end && *rest >= 'a' && *rest <= 'z'; // sm_90a
  return error == std::errc() && number > 0 && (rest == end || variant) ? number : 0;
}

int64_t parseBytes(std::string_view text, std::string_view what) {
  static constexpr std::pair<std::string_view, int64_t> units[] = {{"", 1},
                                                                   {"B", 1},
                                                                   {"kB", 1000},
                                                                   {"KB", 1000},
                                                                   {"MB", 1000'000},
                                                                   {"GB", 1000'000'000},
                                                                   {"TB", 1000'000'000'000},
                                                                   {"KiB", 1 << 10},
                                                                   {"MiB", 1 << 20},
                                                                   {"GiB", 1 << 30},
                                                                   {"TiB", int64_t(1) << 40}};
  const auto fail = [&](const char *reason) -> Error {
    return Error(std::string(what) + " is \"" + std::string(text.substr(0, 40)) + "\"; " + reason);
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit = text.substr(size_t(end - text.data()));
  while (unit.starts_with(' '))
    unit.remove_prefix(1);
  if (error != std::errc() || !(number >= 0))
    throw fail("write a number of bytes or a size such as 2GiB or 1500MB");
  for (const auto &[name, bytes] : units)
    if (unit == name) {
      // Up to 2^53 bytes this is exact for whole numbers of a unit; a fraction of a byte is dropped.
      const double total = number * double(bytes);
      if (!(total <= double(mostBytes)))
        throw fail("no memory is larger than 2^60 bytes");
      return int64_t(total);
    }
  throw fail("the units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)");
}

} // namespace ds::config
