/**
 * ZeroComm in C++: the C API and all its twins. The only include a C++ program needs.
 */
#pragma once

#include <zerocomm/zerocomm.h>
#include <zerocomm/coll.hpp>
#include <zerocomm/comm.hpp>
#include <zerocomm/error.hpp>
#include <zerocomm/fetcher.hpp>
#include <zerocomm/layout.hpp>
#include <zerocomm/mem.hpp>
#include <zerocomm/reducer.hpp>
#include <zerocomm/request.hpp>
#include <zerocomm/schedule.hpp>
#include <zerocomm/types.hpp>
#include <zerocomm/window.hpp>
#include <zerocomm/zero.hpp>
