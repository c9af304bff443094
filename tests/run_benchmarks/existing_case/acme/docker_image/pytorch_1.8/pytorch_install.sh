#!/bin/bash
pip install schedule
