<?php

namespace App\Http\Controllers;

use App\Models\Attachment;
use Illuminate\Support\Facades\Storage;

class AttachmentController extends Controller
{
    public function serve(string $path)
    {
        $attachment = Attachment::where('path', $path)->firstOrFail();
        $this->authorize('view', $attachment->attachable);

        return Storage::download($attachment->path, $attachment->name);
    }
}
