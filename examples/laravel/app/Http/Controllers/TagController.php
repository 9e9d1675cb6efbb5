<?php

namespace App\Http\Controllers;

use App\Models\Tag;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;

class TagController extends Controller
{
    public function index()
    {
        return Tag::withCount('invoices', 'customers')->orderBy('name')->get();
    }

    public function merge(Request $request, Tag $tag)
    {
        DB::update('update taggables set tag_id = ? where tag_id = ?', [$tag->id, $request->input('from')]);

        return back();
    }
}
