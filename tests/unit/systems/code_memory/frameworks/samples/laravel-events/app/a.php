<?php
Event::dispatch('order.paid', 1);
