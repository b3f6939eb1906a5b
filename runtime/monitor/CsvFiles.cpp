//===- CsvFiles.cpp - a table a metric ------------------------------------===//
#include "runtime/monitor/CsvFiles.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "runtime/monitor/AppendedFile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ds::runtime {

CsvFiles::CsvFiles(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem)
    throw Error("csv_monitor.output_path: the folder " + folder_.string() + " cannot be made: " + problem.message());
  requireWritableFolder(folder_ / "Train_Samples_lr.csv");
}

AppendedFile &CsvFiles::fileOf(const std::string &tag) {
  if (const auto found = files_.find(tag); found != files_.end())
    return found->second;
  std::string name = tag + ".csv";
  std::ranges::replace(name, '/', '_');
  return files_.try_emplace(tag, "the CSV file", folder_ / name).first->second;
}

Status CsvFiles::write(const char *tag, uint64_t samples, const Scalar &value) noexcept {
  try {
    std::array<char, 32> text;
    const std::string row = std::to_string(samples) + "," + std::string(text.data(), value.format(text)) + "\n";
    AppendedFile &file = fileOf(tag);
    const std::string_view name = std::string_view(tag).substr(std::string_view(tag).rfind('/') + 1);
    return file.append(file.isEmpty() ? "step," + std::string(name) + "\n" + row : row);
  } catch (const Error &error) {
    return Status::failure("%s", error.what());
  }
}

} // namespace ds::runtime
