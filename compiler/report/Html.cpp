//===- Html.cpp - text, tables and data within a page ---------------------===//
#include "compiler/report/Html.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  std::string html = "<table>\n";
  const size_t shown = std::min(table.rows().size(), most + 1);
  for (size_t i = 0; i < shown; ++i) {
    html += "<tr>";
    for (size_t column = 0; column < table.rows()[i].size(); ++column)
      html += cellHtml(table, column, table.rows()[i][column], i == 0 ? "th" : "td");
    html += "</tr>\n";
  }
  html += "</table>\n";
  if (shown < table.rows().size())
    html += "<p>" + grouped(table.rows().size() - shown) + " more rows: <code>--format json</code> has all.</p>\n";
  return html;
}

std::string swatch(const std::string &style) { return "<span class=\"swatch " + style + "\"></span>"; }

} // namespace ds::report
