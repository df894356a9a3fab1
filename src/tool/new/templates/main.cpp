#include "processor.hpp"

int main() { return kclxx::run(make_processor()); }
