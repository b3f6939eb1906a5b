//===- CheckpointReport.cpp - what lies in a folder of checkpoints --------===//
#include "runtime/checkpoint/CheckpointReport.h"

#include "core/Error.h"
#include "core/Files.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/FileDamage.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;

bool hasManifest(const fs::path &folder) { return isThere(folder / "manifest.json"); }

/// Folders that are checkpoints, or were to become some, by name; `folder` alone where it is one.
std::vector<fs::path> checkpointFolders(const std::string &folder) {
  if (!isFolder(folder))
    throw Error(folder + " is no folder; give the one of --save, or one checkpoint in it");
  if (hasManifest(folder))
    return {folder};
  std::vector<fs::path> folders;
  for (const fs::path &path : listFolder(folder))
    if (path.filename().string().starts_with("global_step") && isFolder(path))
      folders.push_back(path);
  if (folders.empty())
    throw Error(folder + " holds no checkpoints, which are folders named global_stepN with a manifest.json");
  return folders;
}

std::string writtenAt(const fs::path &path) {
  struct stat information{};
  char text[32] = "?";
  if (::stat(path.c_str(), &information) == 0) {
    std::tm local{};
    ::localtime_r(&information.st_mtime, &local);
    (void)std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  }
  return text;
}

std::string layoutOf(const Manifest &manifest) {
  const Manifest::Layout &layout = manifest.layout;
  const uint64_t tensor = plan::axisSize(layout.world, "tensor");
  return std::to_string(layout.ranks) + (layout.ranks == 1 ? " rank" : " ranks") + ", data " +
         std::to_string(layout.dataParallel) + (tensor > 1 ? ", tensor " + std::to_string(tensor) : "") + ", stages " +
         std::to_string(layout.stages) + ", ZeRO " + std::to_string(layout.zero);
}

struct Row {
  uint64_t step = 0;
  std::string text;
};

Row rowOf(const fs::path &folder) {
  const std::string name = folder.filename();
  if (!hasManifest(folder))
    return {UINT64_MAX, "     -  " + name + ": not whole, it has no manifest\n"};
  try {
    const Manifest manifest = readManifest((folder / "manifest.json").string());
    const uint64_t bytes = std::accumulate(manifest.files.begin(), manifest.files.end(), uint64_t(0),
                                           [](uint64_t sum, const Manifest::File &file) { return sum + file.bytes; });
    std::string state = "whole";
    for (const Manifest::File &file : manifest.files)
      if (const std::optional<std::string> found = visibleDamage(folder, file))
        state = *found;
    char line[160];
    std::snprintf(line, sizeof line, "%6llu  %s  %14llu  %-34s  ", static_cast<unsigned long long>(manifest.step),
                  writtenAt(folder / "manifest.json").c_str(), static_cast<unsigned long long>(bytes),
                  layoutOf(manifest).c_str());
    return {manifest.step, line + state + "\n"};
  } catch (const Error &error) {
    return {UINT64_MAX, "     -  " + name + ": " + error.what() + "\n"};
  }
}

} // namespace

std::string checkpointTable(const std::string &folder) {
  std::vector<Row> rows;
  for (const fs::path &path : checkpointFolders(folder))
    rows.push_back(rowOf(path));
  std::ranges::stable_sort(rows, {}, &Row::step);
  std::string text = "  step  written                       bytes  layout                              state\n";
  for (const Row &row : rows)
    text += row.text;
  if (const std::optional<std::string> latest = readRegular((fs::path(folder) / "latest").string(), 4096))
    text += "latest: " + *latest;
  return text;
}

Verification verifyCheckpoints(const std::string &folder) {
  Verification verification;
  size_t compared = 0;
  for (const fs::path &path : checkpointFolders(folder)) {
    if (!hasManifest(path))
      continue;
    const Manifest manifest = readManifest((path / "manifest.json").string());
    if (!manifest.isSealed)
      verification.text += unsealedNote(path.string()) + "\n";
    for (const Manifest::File &file : manifest.files) {
      const std::optional<std::string> found = damage(path, file);
      verification.text += (path / file.name).string() + (found ? ": damaged\n" : ": ok\n");
      if (found)
        verification.damages.push_back(*found);
      ++compared;
    }
  }
  if (compared == 0)
    throw Error(folder + " holds no whole checkpoint: none of its folders has a manifest.json");
  return verification;
}

} // namespace ds::runtime
