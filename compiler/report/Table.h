//===- Table.h - columns of a text report ----------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {

/// Columns padded to their widest cell; the ones named in `right` are set flush right.
class Table {
public:
  Table(std::vector<std::string> head, std::vector<bool> right) : right_(std::move(right)) { add(std::move(head)); }

  void add(std::vector<std::string> row) {
    for (std::string &cell : row) {
      if (cell.size() <= longestCell)
        continue;
      cell.resize(longestCell - 3);
      while (!cell.empty() && (uint8_t(cell.back()) & 0xc0) == 0x80) // the tail of a cut UTF-8 character
        cell.pop_back();
      if (!cell.empty() && uint8_t(cell.back()) >= 0xc0) // and its head
        cell.pop_back();
      cell += "...";
    }
    rows_.push_back(std::move(row));
  }

  /// Adds a column's last cell without a limit: notes.
  void addWithNote(std::vector<std::string> row, const std::string &note) {
    add(std::move(row));
    rows_.back().push_back(note);
  }

  void print(std::string &page) const {
    std::vector<size_t> widths;
    for (const auto &row : rows_)
      for (size_t i = 0; i < row.size(); ++i) {
        widths.resize(std::max(widths.size(), i + 1));
        widths[i] = std::max(widths[i], row[i].size());
      }
    for (const auto &row : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string room(widths[i] - row[i].size(), ' ');
        line += " " + (i < right_.size() && right_[i] ? room + row[i] : row[i] + room) + " ";
      }
      page += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }

private:
  static constexpr size_t longestCell = 60; // bytes

  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace ds::report
