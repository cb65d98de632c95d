// What the example shows: tables for people, JSON for programs, and whether the stages agree.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "job.hpp"

namespace gpt {

int stage_number(zc_stage stage);

void print_table(std::FILE* to, const std::vector<Row>& rows);

// Throws std::runtime_error if the file cannot be written whole.
void write_json(std::FILE* to, const std::string& path, const std::vector<Row>& rows);

// What is wrong with the rows, one sentence each; empty if all is as promised.
std::vector<std::string> find_faults(const std::vector<Row>& rows);

}  // namespace gpt
