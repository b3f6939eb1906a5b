//===- Html.h - text, tables and data within a page -----------------------===//
#pragma once

#include "compiler/report/Table.h"

#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

/// Text that can stand between tags and in quoted attributes, whatever it holds.
std::string escaped(std::string_view text);

/// A line of JSON that can stand in a <script> element.
std::string scriptData(std::string json);

/// <table>; leading spaces of a row's first cell indent it. Tables of more rows than `most` end in a line that says so.
std::string htmlTable(const Table &table, size_t most = 1000);

/// A square in the colour of a style.
std::string swatch(const std::string &style);

/// What is wider than a phone scrolls within the page.
std::string scrolling(const std::string &html);

/// The headings of a page, in order, and links to them.
class Contents {
public:
  /// <h2>, to which html() links.
  std::string heading(const std::string &text);
  /// The same as a <details> that opens when a link leads to it; `open`: from the start.
  std::string folded(const std::string &summary, const std::string &html, bool open);
  std::string html() const;

private:
  /// id="s3"
  std::string anchor(const std::string &text);

  std::vector<std::string> titles_;
};

extern const std::string_view pageStyle;  // HtmlStyle.cpp: CSS
extern const std::string_view pageScript; // HtmlStyle.cpp: JavaScript

} // namespace ds::report
