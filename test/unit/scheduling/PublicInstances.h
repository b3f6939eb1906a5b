//===- PublicInstances.h - MiniMalloc's benchmark files --------------------===//
#pragma once

#include "compiler/scheduling/OffsetProblem.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ds::scheduling {

/// The folder of public instances: $DS_DATA_DIR, else shared/data beside the source tree.
inline std::filesystem::path minimallocFolder() {
  const char *data = std::getenv("DS_DATA_DIR");
  return (data ? std::filesystem::path(data) : std::filesystem::path(DS_SOURCE_DIR) / ".." / "shared" / "data") /
         "minimalloc";
}

/// No buffers if the file does not read as one.
inline OffsetProblem readInstance(const std::filesystem::path &path) {
  OffsetProblem problem;
  problem.alignment = 1;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line); // id,lower,upper,size
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string id;
    OffsetProblem::Buffer buffer{};
    char comma = 0;
    std::getline(fields, id, ',');
    fields >> buffer.begin >> comma >> buffer.end >> comma >> buffer.bytes;
    if (fields.fail())
      return {};
    problem.buffers.push_back(buffer);
  }
  return problem;
}

/// A file, and what is known of it.
struct Published {
  const char *file;
  size_t buffers;
  int64_t bound, capacity;
};

inline constexpr Published publicInstances[] = {
    {"A.1048576.csv", 154, 1048576, 1 << 20}, {"B.1048576.csv", 170, 1048576, 1 << 20},
    {"C.1048576.csv", 203, 1039360, 1 << 20}, {"D.1048576.csv", 213, 986112, 1 << 20},
    {"E.1048576.csv", 215, 1048576, 1 << 20}, {"F.1048576.csv", 296, 1048576, 1 << 20},
    {"G.1048576.csv", 308, 1048576, 1 << 20}, {"H.1048576.csv", 316, 1048576, 1 << 20},
    {"I.1048576.csv", 374, 1048576, 1 << 20}, {"J.1048576.csv", 409, 989184, 1 << 20},
    {"K.1048576.csv", 454, 1048576, 1 << 20}, {"input.12.csv", 5, 12, 12}};

} // namespace ds::scheduling
