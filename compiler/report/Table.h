//===- Table.h - columns that text and html print -------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {

/// A head and rows; columns named in `right` are set flush right.
class Table {
public:
  using Row = std::vector<std::string>;

  Table(Row head, std::vector<bool> right) : right_(std::move(right)), rows_{std::move(head)} {}

  void add(Row row) { rows_.push_back(std::move(row)); }

  /// Adds a last cell without a limit: notes.
  void addWithNote(Row row, const std::string &note) {
    notes_ = row.size();
    row.push_back(note);
    rows_.push_back(std::move(row));
  }

  const std::vector<Row> &rows() const { return rows_; } // the head is the first
  bool isRight(size_t column) const { return column < right_.size() && right_[column]; }

  /// As text: columns padded to their widest cell, long cells cut.
  void print(std::string &page) const {
    std::vector<Row> shown = rows_;
    std::vector<size_t> widths;
    for (Row &row : shown)
      for (size_t i = 0; i < row.size(); ++i) {
        if (i != notes_)
          shorten(row[i]);
        widths.resize(std::max(widths.size(), i + 1));
        widths[i] = std::max(widths[i], row[i].size());
      }
    for (const Row &row : shown) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string room(widths[i] - row[i].size(), ' ');
        line += " " + (isRight(i) ? room + row[i] : row[i] + room) + " ";
      }
      page += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }

private:
  static constexpr size_t longestCell = 60; // bytes

  static void shorten(std::string &cell) {
    if (cell.size() <= longestCell)
      return;
    cell.resize(longestCell - 3);
    while (!cell.empty() && (uint8_t(cell.back()) & 0xc0) == 0x80) // the tail of a cut UTF-8 character
      cell.pop_back();
    if (!cell.empty() && uint8_t(cell.back()) >= 0xc0) // and its head
      cell.pop_back();
    cell += "...";
  }

  std::vector<bool> right_;
  std::vector<Row> rows_;
  size_t notes_ = SIZE_MAX; // the column that holds them
};

} // namespace ds::report
