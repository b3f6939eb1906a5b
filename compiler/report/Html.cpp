//===- Html.cpp - text, tables and data within a page ---------------------===//
#include "compiler/report/Html.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {
namespace {

std::string cellHtml(const Table &table, size_t column, const std::string &text, const char *tag) {
  const size_t indent = column == 0 ? std::min(text.find_first_not_of(' '), text.size()) : 0;
  const std::string classes = std::string(table.isRight(column) ? "right" : "") + (indent > 0 ? "inner" : "");
  return std::string("<") + tag + (classes.empty() ? "" : " class=\"" + classes + "\"") + ">" +
         escaped(std::string_view(text).substr(indent)) + "</" + tag + ">";
}

} // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c == '\'')
      result += "&#39;";
    else
      result += uint8_t(c) < 0x20 && c != '\n' ? ' ' : c;
  }
  return result;
}

std::string scriptData(std::string json) {
  for (size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at))
    json.replace(at, 1, "\\u003c"); // no "</script>" and no "<!--"
  return json;
}

std::string htmlTable(const Table &table, size_t most) {
  std::string rows;
  const size_t shown = std::min(table.rows().size(), most + 1);
  for (size_t i = 0; i < shown; ++i) {
    rows += "<tr>";
    for (size_t column = 0; column < table.rows()[i].size(); ++column)
      rows += cellHtml(table, column, table.rows()[i][column], i == 0 ? "th" : "td");
    rows += "</tr>\n";
  }
  std::string html = scrolling("<table>\n" + rows + "</table>\n");
  if (shown < table.rows().size())
    html += "<p>" + grouped(table.rows().size() - shown) + " more rows: <code>--format json</code> has all.</p>\n";
  return html;
}

std::string scrolling(const std::string &html) { return "<div class=\"scroll\">" + html + "</div>\n"; }

std::string Contents::anchor(const std::string &text) {
  titles_.push_back(text);
  return "id=\"s" + std::to_string(titles_.size()) + "\"";
}

std::string Contents::heading(const std::string &text) {
  return "<h2 " + anchor(text) + ">" + escaped(text) + "</h2>\n";
}

std::string Contents::folded(const std::string &summary, const std::string &html, bool open) {
  return "<details " + anchor(summary) + (open ? " open" : "") + "><summary><h2>" + escaped(summary) +
         "</h2></summary>\n" + html + "</details>\n";
}

std::string Contents::html() const {
  std::string html = "<nav><ul>\n";
  for (size_t i = 0; i < titles_.size(); ++i)
    html += "<li><a href=\"#s" + std::to_string(i + 1) + "\">" + escaped(titles_[i]) + "</a></li>\n";
  return html + "</ul></nav>\n";
}

std::string swatch(const std::string &style) { return "<span class=\"swatch " + style + "\"></span>"; }

} // namespace ds::report
